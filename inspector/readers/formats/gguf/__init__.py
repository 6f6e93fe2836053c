"""GGUF, the format of llama.cpp and ggml."""
