"""What a comparison proves of two files as a whole: the cheap and exact first. A new one is a file and a name here."""
