"""The Evaluation page: pictures in class folders, how often the model is right on them, and where it is not."""
