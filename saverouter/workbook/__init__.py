"""What people read: tables, figures, the notebooks as files, headless runs of them, and report pages.

The outermost room: it may use every other one, and none of them knows it.
"""
