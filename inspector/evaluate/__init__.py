"""How good is a classifier on pictures that lie in class folders: figures, curves, calibration, worst cases."""
