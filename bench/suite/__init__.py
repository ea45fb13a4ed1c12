"""The suite of cases: which rows are run, by whom, and what each is measured to take."""
