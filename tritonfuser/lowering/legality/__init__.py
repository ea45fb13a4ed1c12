"""Whether one kernel can hold a segment, and whether a segment may have given params."""
