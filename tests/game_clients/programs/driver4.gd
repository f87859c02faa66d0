# A game for the tests: follows its arguments and prints what the addon reports.
extends SceneTree

var asked := {}
var gatehouse: Node = null


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
	for base_url in words[0].split(","):
		gatehouse.base_url = base_url
		_print(await gatehouse.sign_in(_options()))
	print("end")
	quit()


func _print(result: Dictionary) -> void:
	for name in ["outcome", "user_id", "nick", "jwt", "error"]:
		print(name + " " + result[name])
	print("ban %s %s %d" % [result.reason, result.public_text, result.until])


func _options() -> Dictionary:
	var options := {"open_browser": "default" in asked, "code": "code" in asked, "qr": "qr" in asked}
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
	if state == asked.get("cancel_on"):
		create_timer(0.3).timeout.connect(gatehouse.cancel)
