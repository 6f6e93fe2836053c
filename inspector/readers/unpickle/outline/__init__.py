"""From the values of a followed pickle to the tree, the tensors and the state dicts that are shown."""
