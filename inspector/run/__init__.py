"""The checkpoints of one training, in its order: how each tensor's numbers went, what moved when, what the files state.

    RunFile, files_in           what may be a member, also in archives     files.py
    measure_run                 files -> RunReport                         measure.py, report.py
    group_series                tensors of a module or role as one         groups.py
    write_run                   the report as TensorBoard's events         export.py

One member is read at a time, beside the first, the last and the one before it; no torch.
"""
