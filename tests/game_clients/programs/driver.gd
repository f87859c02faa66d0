# A game for the tests: follows its arguments and prints what the client reports.
extends SceneTree

var asked = {}
var login = null


func _init():
	var words = OS.get_cmdline_args()
	var at = 0
	while not "driver.gd" in words[at]:
		at += 1
	var base_urls = words[at + 1].split(",")
	for word in Array(words).slice(at + 2, words.size() - 1) if at + 2 < words.size() else []:
		var equals = word.find("=")
		asked[word.substr(0, equals)] = word.substr(equals + 1)
	login = load("gatehouse_login.gd").new()
	root.add_child(login)
	login.connect("link_ready", self, "_on_link")
	connect("idle_frame", self, "_cancel_if_asked")
	login.connect("state_changed", self, "_on_state")
	for base_url in base_urls:
		login.sign_in(base_url, _options())
		var result = yield(login, "finished")
		for name in ["outcome", "user_id", "nick", "jwt", "error"]:
			print(name + " " + result[name])
		print("ban %s %s %d" % [result.reason, result.public_text, result.until])
	print("end")
	quit()


func _options():
	var options = {"open_browser": "default" in asked, "code": "code" in asked, "qr": "qr" in asked}
	for name in ["app_id", "poll_timeout", "patience"]:
		if name in asked:
			options[name] = int(asked[name])
	if "factor" in asked:
		options.factor = asked.factor
	if "distr" in asked:
		options.more = {"distr": asked.distr}
	return options


func _on_link(session):
	if "default" in asked:
		return
	print("link " + session.url)
	print("code " + session.code)
	print("qr " + session.qr.substr(0, 26))
	if "browser" in asked:
		login.open_browser(session.url)


func _on_state(state):
	print("state " + state)


func _cancel_if_asked():
	if "cancel" in asked and File.new().file_exists(asked.cancel):
		asked.erase("cancel")
		login.cancel()
