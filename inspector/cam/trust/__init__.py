"""Can a heat map be trusted: measures of it, each beside maps that know nothing."""
