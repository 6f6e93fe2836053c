"""Model Inspector: opens any PyTorch-ecosystem checkpoint without running anything inside it.

Public names are imported on first use, so that `import inspector` loads neither torch nor streamlit.
"""
