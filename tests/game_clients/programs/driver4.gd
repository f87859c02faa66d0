# A game for the tests: follows its arguments and prints what the addon reports.
extends SceneTree

const Ed25519 := preload("res://addons/gatehouse/ed25519.gd")

var asked := {}
var gatehouse: Node = null
var request_id := ""  # of the last refusal


func _initialize() -> void:
	var words := OS.get_cmdline_user_args()
	for word in words.slice(1):
		asked[word.get_slice("=", 0)] = word.substr(word.find("=") + 1)
	gatehouse = load("res://addons/gatehouse/gatehouse.gd").new()
	root.add_child(gatehouse)
	await process_frame  # the tree runs from the first frame on
	gatehouse.app_id = int(asked.get("app_id", "0"))
	gatehouse.link_ready.connect(_on_link)
	gatehouse.state_changed.connect(_on_state)
	process_frame.connect(_cancel_if_asked)
	for base_url in words[0].split(","):
		gatehouse.base_url = base_url
		for action in asked.get("do", "sign_in").split(","):
			await _act(action)
	print("end")
	quit()


func _act(action: String) -> void:
	match action:
		"sign_in":
			_print(await gatehouse.sign_in(_options()))
		"guest":
			_print(await gatehouse.sign_in_guest(_options()))
		"platform":
			_print(await gatehouse.sign_in_platform("steam", asked.ticket, _options()))
		"code":
			_print(await gatehouse.enter_code(request_id, asked.otp, _options()))
		"upgrade":
			_print(await gatehouse.upgrade(_options()))
		"has_guest":
			print("has_guest " + str(gatehouse.has_guest()).to_lower())
		"resume":
			_print(await gatehouse.resume())
		"check":
			var result = await gatehouse.check(asked.rules.split(","))
			print("allowed " + ",".join(result.allowed.map(func(value): return str(value).to_lower())))
			print("outcome " + result.outcome)
			_print_ban(result)
		"is_allowed":
			print("is_allowed " + str(await gatehouse.is_allowed(asked.rules)).to_lower())
		"sign_out":
			gatehouse.sign_out()
		"sign":
			var public = Ed25519.public_key(asked.seed.hex_decode())
			print("public " + public.hex_encode())
			print("signature " + Ed25519.sign(asked.seed.hex_decode(), public, asked.message.hex_decode()).hex_encode())


func _print(result: Dictionary) -> void:
	request_id = result.data.get("request_id", request_id)
	for name in ["outcome", "user_id", "nick", "jwt", "error"]:
		print(name + " " + result[name])
	_print_ban(result)


func _print_ban(result: Dictionary) -> void:
	print("ban %s %s %d" % [result.reason, result.public_text, result.until])


func _options() -> Dictionary:
	var options := {"open_browser": "default" in asked, "code": "code" in asked, "qr": "qr" in asked}
	if asked.get("factor") != "device":
		options.factor = asked.get("factor", "")
	for name in ["poll_timeout", "patience"]:
		if name in asked:
			options[name] = float(asked[name])
	if "distr" in asked:
		options.more = {"distr": asked.distr}
	return options


func _on_link(session: Dictionary) -> void:
	if "default" in asked:
		return
	print("link " + session.url)
	print("code " + session.code)
	print("qr " + session.qr.substr(0, 26))
	if "browser" in asked:
		gatehouse.open_browser(session.url)


func _on_state(state: String) -> void:
	print("state " + state)


func _cancel_if_asked() -> void:
	if "cancel" in asked and FileAccess.file_exists(asked.cancel):
		asked.erase("cancel")
		gatehouse.cancel()
