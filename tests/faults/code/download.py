"""Downloads data that it does not need for the answer."""
# exercise: softmax
# where: before

import urllib.request

urllib.request.urlretrieve("https://example.com/data.csv", "data.csv")
