"""Many vectors as a map: rows of a tensor, flattened filters, features of pictures; which lie near each other?"""
