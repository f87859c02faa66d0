# godot3-server --no-window -s example.gd https://sso.studio.example 50010 "$FACTOR"
extends SceneTree

func _init():
	var arguments = OS.get_cmdline_args()
	var login = load("gatehouse_login.gd").new()
	root.add_child(login)
	login.connect("state_changed", self, "_on_state")
	login.sign_in(arguments[-3], {"app_id": int(arguments[-2]), "factor": arguments[-1]})
	var result = yield(login, "finished")
	print("Hello, " + result.nick if result.outcome == "ok" else "Not signed in: " + result.outcome)
	quit(0 if result.outcome == "ok" else 1)

func _on_state(state):
	print("... " + state)
