"""ONNX models, from the protocol buffers' wire format."""
