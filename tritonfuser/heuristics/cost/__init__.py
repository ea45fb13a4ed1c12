"""What a kernel costs: a model of its time from the facts of a problem, its params and a device.

``counts`` turns facts and params into numbers of programs, steps, bytes and instructions. ``model``
turns these into seconds, resource by resource. ``constants`` has what was fitted to measured times.
"""
