"""One file per format; never executes, reads headers only."""
