"""The demo page: text in, nested view out; on this machine, or as a Space of the Hub.

`finding.py` reads a text once and answers as often as one likes; `files.py` is what can be downloaded; `views.py` is
what is shown; `page.py` is the Gradio app; `space.py` the folder of a Space.
"""
