"""The parts of bench_cam.py: where heat lies, what maps cost beside other tools, and how much memory they take."""
