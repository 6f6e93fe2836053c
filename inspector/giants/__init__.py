"""One checkpoint of many gigabytes: its numbers by pieces, wherever they are worked out, kept and gone on with."""
