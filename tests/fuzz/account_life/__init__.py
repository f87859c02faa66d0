"""The life of accounts against a model: what people, strangers and administrators do to them, in any order.

`model` says what should be. `browsers`, `devices`, `players` and `administration` send the requests to the service of
`installation`. The files `steps_of_…` are the steps of the machine, `checks` is what holds after each of them, and
`life` joins them. To add a step: a method of the model, one of a player or of the administration, and a rule that
takes both and compares how they end.
"""
