"""Follows a pickle opcode by opcode, within a budget, and runs nothing."""
