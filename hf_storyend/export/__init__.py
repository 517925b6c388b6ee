"""Models as ONNX graphs, and endings from them without torch."""
