"""The only Streamlit code outside app.py, ui.py and pages/."""
