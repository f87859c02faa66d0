# godot --headless -s example.gd -- https://sso.studio.example 50010
extends SceneTree

func _initialize():
	var args = OS.get_cmdline_user_args()
	var gatehouse = load("res://addons/gatehouse/gatehouse.gd").new()  # in a game: the autoload Gatehouse
	root.add_child(gatehouse)
	await process_frame
	gatehouse.base_url = args[0]
	gatehouse.app_id = int(args[1])
	gatehouse.state_changed.connect(func(state): print("... " + state))
	var result = await gatehouse.resume()
	if result.outcome == "signed_out":
		result = await gatehouse.sign_in()
	if result.outcome != "ok":
		print("Not signed in: %s %s" % [result.outcome, result.public_text if result.reason == "banned" else result.error])
		quit(1)
		return
	print("Hello, " + result.nick)
	var check = await gatehouse.check(["app.play", "app.can_ban"])
	print("Permissions: ", check.allowed)
	quit()
