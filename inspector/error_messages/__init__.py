"""What does this error message mean, and what does the loading code need? For text that a person pastes."""
