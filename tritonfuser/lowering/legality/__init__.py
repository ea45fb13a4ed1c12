"""What is legal: which values one kernel can hold, and which params a segment may have."""
