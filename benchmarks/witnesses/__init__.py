"""Small trained networks whose layouts are known, in every layout that a question offers."""
