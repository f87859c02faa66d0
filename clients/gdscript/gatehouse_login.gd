# SPDX-License-Identifier: Apache-2.0
#
# Sign a player in to a game with Gatehouse: copy this file into your game. Godot 3.2 or newer.
#
#     var login = preload("res://gatehouse_login.gd").new()
#     add_child(login)
#     var factor = login.device_factor("user://device")
#     login.sign_in("https://sso.studio.example", {"app_id": 50001, "factor": factor})
#     var result = yield(login, "finished")
#     if result.outcome == "ok":
#         greet(result.nick)
#
# It opens the system browser and emits `finished` when the player has confirmed there. Call `cancel` when the player
# gives up. One sign-in at a time. Nothing is printed.
extends Node

# What the player needs: open `url` on any device; `code` and `qr` (an SVG data URI) are there when asked for.
signal link_ready(session)
# waiting, opened, signing_in, confirmed, cancelled
signal state_changed(state)
# {outcome, user_id, nick, jwt, token, error, reason, public_text, until, data}, where outcome is
#   "ok": signed in; `data` is everything the service told
#   "refused": the player said no, or the service did; `error` is a record id that its operators can look up. For a
#     banned player `reason` is "banned": show `public_text`, and `until` (Unix time, 0 for no end)
#   "cancelled": the game cancelled
#   "unreachable": the service cannot be reached; `error` says how
#   "invalid": the address is neither https nor on this machine, or a sign-in is under way
signal finished(result)
signal _woken(answer)

const GAME_SESSION = "/proxy/api/gameSession/"
const LONGEST_ANSWER = 1048576  # bytes
const SHORT_TIMEOUT = 15  # seconds for everything that is not held
const LEAST_TIMEOUT = 1  # seconds: what comes at the end of all patience is still a try
const SESSION_LIVES = 1200  # seconds; no session of the service gets older
const LONGEST_PAUSE = 90  # seconds: an unpolled session ends after 120, so a longer Retry-After is an end
const MARGIN = 0.05  # seconds: timers may be a frame early, polls may not
# https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
const ADDRESS = "^(?:https://(?:[A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])|http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]))(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?(?<query>\\?[A-Za-z0-9._~%&=+/-]*)?$"
const LOCATION = "[?&]location=([A-Za-z0-9._~%+/=-]{1,500})"

var _busy = false
var _cancelled = false
var _state = ""
var _patience = 0  # seconds
var _answered = 0  # milliseconds
var _base = ""
var _http = null
var _timer = null


# Options, all of them optional: app_id, factor, code, qr, more (further fields of getGsid), open_browser (true: false
# leaves it to whoever hears link_ready), poll_timeout (40 seconds; a poll is held for up to 30) and patience (90 seconds
# without a whole answer until the service counts as unreachable).
func sign_in(base_url, options = {}):
	if _busy or not _is_address(base_url, false):
		call_deferred("emit_signal", "finished", _result("invalid", "base_url must be https, or http on this machine"))
		return
	_busy = true
	_cancelled = false
	_state = ""
	_patience = options.get("patience", 90)
	_answered = OS.get_ticks_msec()
	_base = base_url.rstrip("/")
	_prepare()
	var result = _run(options)
	if result is GDScriptFunctionState:
		result = yield(result, "completed")
	_http.queue_free()
	_timer.queue_free()
	_busy = false
	emit_signal("finished", result)


func cancel():
	if not _busy or _cancelled:
		return
	_cancelled = true
	_http.cancel_request()
	_timer.stop()
	emit_signal("_woken", null)


# No shell ever sees the address.
func open_browser(url):
	if not _is_address(url, true):
		return false
	if OS.shell_open(url) == OK:
		return true
	return OS.get_name() in ["X11", "Server"] and OS.execute("xdg-open", [url], false) > 0


# The secret of this device. It is made at the first call, in a file that only the player can read.
func device_factor(path):
	var file = File.new()
	var factor = ""
	if file.open(path, File.READ) == OK:
		factor = file.get_as_text().strip_edges()
		file.close()
	if factor.length() == 64 and factor.is_valid_hex_number():
		return factor
	factor = Crypto.new().generate_random_bytes(32).hex_encode()
	if file.open(path, File.WRITE) != OK:
		push_error("cannot write " + path)
		return ""
	if OS.get_name() in ["X11", "Server", "OSX"]:  # empty until it is protected
		OS.execute("chmod", ["600", ProjectSettings.globalize_path(path)], true)
	file.store_string(factor)
	file.close()
	return factor


func _prepare():
	_http = HTTPRequest.new()
	_http.max_redirects = 0
	_http.body_size_limit = LONGEST_ANSWER
	_http.connect("request_completed", self, "_on_completed")
	add_child(_http)
	_timer = Timer.new()
	_timer.one_shot = true
	_timer.connect("timeout", self, "_on_timer")
	add_child(_timer)


func _run(options):
	var answer = yield(_send("getGsid", _registration(options), "", SHORT_TIMEOUT), "completed")
	if answer == null:
		return _result("cancelled")
	var session = _session(answer)
	if session == null:
		return _refused(answer) if _text(answer.body, "status") == "ERROR" else _unreachable(answer)
	var location = _location(answer.location)
	emit_signal("link_ready", session)
	if options.get("open_browser", true):
		open_browser(session.url)
	_tell("waiting")
	var result = _result("cancelled")
	if not _cancelled:
		result = yield(_wait(session.gsid, location, options), "completed")
	if result.outcome != "refused":  # a refused session has ended by itself
		_cancelled = false
		var closing = {"gsid": session.gsid, "status": "Success" if result.outcome == "ok" else "Error"}
		yield(_send("closeGsid", closing, location, SHORT_TIMEOUT), "completed")
	return result


func _wait(gsid, location, options):
	var started = OS.get_ticks_msec()
	_answered = started
	var backoff = 1
	while OS.get_ticks_msec() - started < 1000 * SESSION_LIVES:
		var asked = {"gsid": gsid, "states": "1"}
		var answer = yield(_send("getGsidResult", asked, location, options.get("poll_timeout", 40)), "completed")
		if answer == null:
			return _result("cancelled")
		var result = _ending(answer)
		if result != null:
			return result
		var seconds = _pause(answer)
		if seconds >= 0:
			_answered = OS.get_ticks_msec()
			backoff = 1
		elif _patience_left() <= 0:
			return _unreachable(answer)
		elif answer.timed_out:
			seconds = 0
		else:
			seconds = min(backoff, _patience_left())
			backoff = min(2 * backoff, 8)
		if seconds > 0:
			_timer.start(seconds + MARGIN)
			yield(self, "_woken")
		if _cancelled:
			return _result("cancelled")
	return _result("unreachable", "the session is too old")


func _registration(options):
	var asked = {"app_id": options.get("app_id", 0)}
	if options.get("factor", "") != "":
		asked.factor = options.factor
	for name in ["code", "qr"]:
		if options.get(name, false):
			asked[name] = "1"
	var more = options.get("more", {})
	for name in more:
		asked[name] = more[name]
	return asked


# The end, or null when polling goes on.
func _ending(answer):
	var status = _text(answer.body, "status")
	if answer.http == 429:
		return _refused(answer) if _pause(answer) > LONGEST_PAUSE else null
	if answer.http == 403 or (status == "ERROR" and answer.http < 500):  # 5xx may pass
		_tell(_text(answer.body, "state"))
		return _refused(answer)
	if answer.http != 200:
		return null
	if status == "RETRY":
		_tell(_text(answer.body, "state"))
	if status == "CANCELLED":
		_tell("cancelled")
		return _result("cancelled")
	if status != "OK":
		return null
	_tell("confirmed")
	var result = _result("ok")
	for name in ["user_id", "nick", "jwt", "token"]:
		result[name] = _text(answer.body, name)
	result.data = answer.body
	return result


# Seconds until the next poll; -1 when there was no answer.
func _pause(answer):
	if answer.http == 429:
		return int(answer.retry_after) if answer.retry_after.is_valid_integer() else 60
	if answer.http != 200 or _text(answer.body, "status") != "RETRY":
		return -1
	var delay = answer.body.get("delay", 1)
	return int(ceil(delay)) if typeof(delay) in [TYPE_INT, TYPE_REAL] and delay >= 0 else 1


func _session(answer):
	var session = {}
	for name in ["gsid", "url", "code", "qr"]:
		session[name] = _text(answer.body, name)
	var usable = session.gsid != "" and _is_address(session.url, true)
	return session if usable and _text(answer.body, "status") == "OK" else null


func _tell(state):
	if state != "" and state != _state:
		_state = state
		emit_signal("state_changed", state)


# Seconds.
func _patience_left():
	return _patience - (OS.get_ticks_msec() - _answered) / 1000.0


# The answer, or null once the game has cancelled.
func _send(name, asked, location, timeout):
	var url = _base + GAME_SESSION + name + ("" if location == "" else "?location=" + location)
	var headers = ["Content-Type: application/json", "User-Agent: gatehouse-login/1 (Godot)"]
	_http.timeout = int(ceil(min(timeout, max(_patience_left(), LEAST_TIMEOUT))))  # 3.2 knows whole seconds only
	if _http.request(url, headers, true, HTTPClient.METHOD_POST, to_json(asked)) != OK:
		call_deferred("emit_signal", "_woken", _answer())
	var answer = yield(self, "_woken")
	return null if _cancelled else answer


func _on_completed(result, http, headers, body):
	var answer = _answer()
	answer.timed_out = result == HTTPRequest.RESULT_TIMEOUT
	answer.error = "no connection (%d)" % result
	if result == HTTPRequest.RESULT_SUCCESS:
		answer.http = http
		answer.location = _header(headers, "location")
		answer.retry_after = _header(headers, "retry-after")
		var parsed = JSON.parse(body.get_string_from_utf8())
		if parsed.error == OK and typeof(parsed.result) == TYPE_DICTIONARY:
			answer.body = parsed.result
	emit_signal("_woken", answer)


func _on_timer():
	emit_signal("_woken", null)


func _answer():
	return {
		"http": 0, "body": {}, "location": "", "retry_after": "", "timed_out": false, "error": "no connection"
	}


func _header(headers, wanted):
	for line in headers:
		var colon = line.find(":")
		if line.substr(0, max(colon, 0)).to_lower() == wanted:
			return line.substr(colon + 1).strip_edges()
	return ""


func _result(outcome, error = ""):
	return {
		"outcome": outcome, "user_id": "", "nick": "", "jwt": "", "token": "", "error": error,
		"reason": "", "public_text": "", "until": 0, "data": {}
	}


func _refused(answer):
	var result = _result("refused", _text(answer.body, "error"))
	result.reason = _text(answer.body, "reason")
	result.public_text = _text(answer.body, "public_text")
	var until = answer.body.get("until", 0)
	result.until = int(until) if typeof(until) in [TYPE_INT, TYPE_REAL] else 0
	return result


func _unreachable(answer):
	return _result("unreachable", "HTTP %d" % answer.http if answer.http != 0 else answer.error)


func _text(body, name):
	var value = body.get(name, "")
	return value if typeof(value) == TYPE_STRING else ""


func _is_address(url, with_query):
	var found = _search(ADDRESS, url)
	return found != null and not "\n" in url and (with_query or found.get_string("query") == "")


func _location(header):
	var found = _search(LOCATION, header)
	return "" if found == null else found.get_string(1)


func _search(pattern, text):
	var regex = RegEx.new()
	regex.compile(pattern)
	return regex.search(text)
