"""Parts of nvFuser's first frontend that have state: its cache of definitions, launch params."""
