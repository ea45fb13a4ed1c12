"""What grouping asks heuristics about a group of nodes, at the sizes of this run.

Where sizes vary each question is kept, so that it can be asked at other sizes: a variant whose
schedule another size would not choose is not taken for that size. A question is a function that
takes facts with open sizes; its answer is a function of the same facts in plain numbers.
"""
