"""What `load_state_dict(torch.load(path))` does with forty files, beside what is said about them."""
