# godot3-server --no-window -s example.gd https://sso.studio.example 50010
extends SceneTree

func _init():
	var arguments = OS.get_cmdline_args()
	var login = load("gatehouse_login.gd").new()
	root.add_child(login)
	login.connect("state_changed", self, "_on_state")
	var factor = login.device_factor("user://device")
	login.sign_in(arguments[-2], {"app_id": int(arguments[-1]), "factor": factor})
	var result = yield(login, "finished")
	print("Hello, " + result.nick if result.outcome == "ok" else "Not signed in: " + result.outcome)
	quit(0 if result.outcome == "ok" else 1)

func _on_state(state):
	print("... " + state)
