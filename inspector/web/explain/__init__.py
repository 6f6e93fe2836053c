"""The Explain page's parts: pictures, the model's input, what is looked at, and each thing that is shown of it."""
