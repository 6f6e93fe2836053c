"""TensorBoard's event files: read without executing or trusting anything in them, and written for TensorBoard to open.

    find_event_runs, event_runs_beside    which files are there       find.py
    read_events                           files -> EventLog           read.py, report.py
    event_file                            an EventWriter into a file  write.py
    write_projector                       rows for its Projector      projector_files.py
    write_checkpoints                     statistics of checkpoints   checkpoints.py

Neither tensorboard, torch nor protobuf is needed.
"""
