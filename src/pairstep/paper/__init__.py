"""The paper: its constants, rates and examples (`theory`), and its experiments and a few more.

There is one module per figure, or per group of similar figures. Each defines what to measure
(parts), what to keep (CSV tables), what to conclude (claims) and how to draw it (panels, which use
only the CSV tables). `reproduce` runs them all.
"""
