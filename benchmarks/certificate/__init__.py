"""Small networks with batch norms, trained here on drawn shapes, for holding the certificate against the truth."""
