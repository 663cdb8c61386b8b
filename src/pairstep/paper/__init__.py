"""The paper: its constants, rates and examples (`theory`), and its experiments and a few more.

There is one module for each group of similar figures. Each defines what to measure (parts), what to
draw (a table), what to conclude (claims) and how to draw it (panels). `reproduce` runs them all.
"""
