"""A report about one file as a page of its own: no network, no script, fit for paper; and its figures as SVG."""
