"""Figures of a study: frames and outcomes in, `plotly.graph_objects.Figure` out. Pure.

Every module has one `figure` function, which gives None where there is nothing to draw. The report
shows what they make, and a notebook can make the same. Plotly reads names and hover text as HTML:
whatever came from outside is escaped here.
"""
