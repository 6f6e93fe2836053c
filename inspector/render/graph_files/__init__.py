"""A network's graph as files for other programs: DOT, Mermaid, model-explorer's JSON, a simple SVG."""
