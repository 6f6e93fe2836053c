"""What a checkpoint alone can say in a model card or a bill of materials, and what stands in a signature beside it."""
