"""DeepSpeed ZeRO folders."""
