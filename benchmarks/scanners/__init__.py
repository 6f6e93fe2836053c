"""What other scanners of checkpoints call dangerous, as files made here."""
