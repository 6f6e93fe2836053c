"""What stands before every route of the server: who may ask, by which name, and what each answer tells the browser."""
