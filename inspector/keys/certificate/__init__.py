"""The numbers testify: each batch norm remembers what its convolution put out, and that says who stood before it."""
