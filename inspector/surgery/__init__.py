"""Parts of a network left out, taken out alone, or given a new head: typed steps, previewed before they are written."""
