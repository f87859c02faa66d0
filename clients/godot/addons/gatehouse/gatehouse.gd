# SPDX-License-Identifier: Apache-2.0
extends Node
## Sign players in with Gatehouse. Godot 4.2 or newer; the plugin adds it as the autoload `Gatehouse`.
##
##     Gatehouse.base_url = "https://sso.studio.example"
##     Gatehouse.app_id = 50001
##     var result = await Gatehouse.resume()
##     if result.outcome != "ok":
##         result = await Gatehouse.sign_in()
##     if result.outcome == "ok":
##         greet(result.nick)
##
## A result is {outcome, user_id, nick, jwt, token, error, reason, public_text, until, data}, where outcome is
##   "ok": signed in; `data` is everything the service told
##   "refused": the player said no, or the service did; `error` is a record id that its operators can look up. `reason`
##     is "banned": show `public_text`, and `until` (Unix time, 0 for no end); or, for guests and platforms, one of
##     "second_factor": ask for a code of `data.methods` and call `enter_code`; "wrong_code": ask again; "no_account":
##     sign in through the browser; "terms": open `data.url`, then sign in again;
##     "throttled": try again after `data.retry_after` seconds; "login_error": the key or ticket is not accepted
##   "signed_out": there is no session, or it has ended: sign in
##   "cancelled": the game cancelled
##   "unreachable": the service cannot be reached; `error` says how
##   "invalid": `base_url` is neither https nor on this machine, or a sign-in is under way
## Nothing is printed.

## What the player needs: open `url` on any device; `code` and `qr` (an SVG data URI) are there when asked for.
signal link_ready(session: Dictionary)
## waiting, opened, signing_in, confirmed, cancelled
signal state_changed(state: String)
signal _pause_ended

const Request := preload("request.gd")
const Storage := preload("storage.gd")
const Ed25519 := preload("ed25519.gd")
const ProofOfWork := preload("proof_of_work.gd")

const GAME_SESSION := "/proxy/api/gameSession/"
const SHORT_TIMEOUT := 15.0  # seconds for everything that is not held
const LEAST_TIMEOUT := 1.0  # seconds: what comes at the end of all patience is still a try
const SESSION_LIVES := 1200.0  # seconds; no session of the service gets older
const LONGEST_PAUSE := 90  # seconds: an unpolled session ends after 120, so a longer Retry-After is an end
const MARGIN := 0.05  # seconds: timers may be a frame early, polls may not
const FACTOR_BYTES := 32
const KEY_BYTES := 32
const RENEW_BEFORE := 604800.0  # seconds: a week before its end, the JWT of a guest is renewed
const REASONS := {
	"2STEP": "second_factor", "2STEPERROR": "wrong_code", "TERMS": "terms", "BLOCKED": "throttled",
	"LOGINERROR": "login_error", "DENIED": "denied"
}
# https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
const ADDRESS := "^(?:https://(?:[A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])|http://(?:localhost|127\\.0\\.0\\.1|\\[::1\\]))(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?(?<query>\\?[A-Za-z0-9._~%&=+/-]*)?$"
const LOCATION := "[?&]location=([A-Za-z0-9._~%+/=-]{1,500})"

## The address of the service. In a web export, the address of the page's own server, which forwards to it.
var base_url := ""
var app_id := 0
## Where factor, key and session are stored; set another object with the same two functions to store them elsewhere.
var storage: RefCounted = Storage.new()

var _busy := false
var _cancelled := false
var _state := ""
var _patience := 90.0  # seconds
var _answered := 0  # milliseconds
var _request: Request = null
var _timer: Timer = null


## Sign in through the browser. Options, all of them optional: code, qr, more (further fields of getGsid), open_browser
## (true: false leaves it to the listener of link_ready), factor (that of the device), poll_timeout (40 seconds; a poll
## is held for up to 30) and patience (90 seconds without a whole answer until the service counts as unreachable).
func sign_in(options := {}) -> Dictionary:
	options = options.duplicate()  # the caller's stay as they are
	if not _begin(options):
		return _invalid()
	var result := await _sign_in_with_browser(options)
	return _finish(result, options)


## Sign in without an account, with a key that is made once on this device. The same key finds the same guest again.
## Options: more (further fields of the request), factor, patience.
func sign_in_guest(options := {}) -> Dictionary:
	options = options.duplicate()
	if not _begin(options):
		return _invalid()
	return _finish(await _sign_in_with_key(options), options)


## Sign in with a ticket of the player's game platform, such as "steam". Options as for guests.
func sign_in_platform(platform: String, ticket: String, options := {}) -> Dictionary:
	options = options.duplicate()
	if not _begin(options):
		return _invalid()
	var asked := _registration(options)
	asked.merge({"platform": platform, "ticket": ticket})
	return _finish(_login_result(await _send("/proxy/api/platformLogin", asked, SHORT_TIMEOUT)), options)


## Continue a sign-in that was refused with the reason "second_factor", with `data.request_id` of that result and the code
## that the player entered. With the method "email" and an empty code the service sends one. Options as for guests.
func enter_code(request_id: String, otp: String, options := {}, method := "") -> Dictionary:
	options = options.duplicate()
	if not _begin(options):
		return _invalid()
	var asked := {"request_id": request_id}
	if otp != "":
		asked.otp = otp
	if method != "":
		asked.method = method
	return _finish(_login_result(await _send("/proxy/api/login", asked, SHORT_TIMEOUT)), options)


## Give the guest of this device an account, through the browser: the player registers, or signs in to the account that
## gets everything the guest has. Show the code of `link_ready`, the player has to pick it. Options as for `sign_in`.
## Refused with the reason "login_error" if this device has no guest.
func upgrade(options := {}) -> Dictionary:
	options = options.duplicate()
	if not _begin(options):
		return _invalid()
	if not has_guest():
		var refused := _result("refused")
		refused.reason = "login_error"
		return _finish(refused, options)
	var answer := await _send("/proxy/api/guest", {"app_id": app_id, "intent": "upgrade"}, SHORT_TIMEOUT)
	if _text(answer.body, "challenge") == "":
		return _finish(_login_result(answer), options)
	var proof := _proof_fields(_text(answer.body, "challenge"))
	options.more = options.get("more", {}).merged(proof.merged({"intent": "upgrade"}))
	var result := await _sign_in_with_browser(options)
	if result.outcome == "ok":
		forget_guest()  # the service has retired the key
	return _finish(result, options)


## Whether this device has the key of a guest.
func has_guest() -> bool:
	return storage.read(base_url, "device_key") != ""


## Remove the key: the guest is lost, unless it has an account. The next `sign_in_guest` makes a new one.
func forget_guest() -> void:
	storage.write(base_url, "device_key", "")


## Ends the sign-in that is under way with the outcome "cancelled".
func cancel() -> void:
	if not _busy or _cancelled:
		return
	_cancelled = true
	if _timer != null:
		_timer.stop()
		_pause_ended.emit()
	elif _request != null:
		_request.abort()


## The stored session, if the service still accepts it: call it when the game starts. A session that ended is "signed_out".
## A guest whose session has ended, or ends within a week, is signed in again with the key of the device.
func resume() -> Dictionary:
	if not _is_address(base_url, false):
		return _invalid()
	if stored_session().is_empty():
		return _result("signed_out")
	var session := stored_session()
	var is_guest := _text(session, "auth") == "guest" and has_guest()
	if is_guest and _seconds_left(session) < RENEW_BEFORE:
		return await sign_in_guest()
	var answer := await _post_signed("/api/permissions/user/info", {})
	if answer.http == 200 and _text(answer.body, "status") == "OK":
		return _signed_in(session)
	var result := _not_allowed(answer)
	return await sign_in_guest() if is_guest and result.outcome == "signed_out" else result


## Forget the session on this device. Its JWT is not revoked: the player does that with "Sign out everywhere" on the
## account page.
func sign_out() -> void:
	storage.write(base_url, "session", "")


## The login data of the last sign-in on this device, or {}. Nothing asks the service.
func stored_session() -> Dictionary:
	var session = JSON.parse_string(storage.read(base_url, "session")) if storage.read(base_url, "session") != "" else null
	return session if session is Dictionary and _text(session, "jwt") != "" else {}


## Ask for several permissions at once: names of rules, or {rule, project_id, resource}. The result has `allowed`, an
## array of booleans in the same order, and it is empty unless the outcome is "ok".
func check(rules: Array, application_id := app_id) -> Dictionary:
	if not _is_address(base_url, false):
		return _permissions(_invalid(), [])
	if stored_session().is_empty():
		return _permissions(_result("signed_out"), [])
	var checks := rules.map(func(rule): return rule if rule is Dictionary else {"rule": str(rule)})
	var asked := {"application_id": application_id, "data": {"checks": checks}}
	var answer := await _post_signed("/api/permissions/check", asked)
	var allowed = answer.body.get("data")
	if answer.http == 200 and allowed is Array and allowed.size() == rules.size():
		return _permissions(_result("ok"), allowed.map(func(value): return value is bool and value))
	return _permissions(_not_allowed(answer), [])


## Whether the player has this permission; also false if the service cannot tell. For what must be protected, ask on your
## game server: a modified game can claim anything.
func is_allowed(rule: String) -> bool:
	var result := await check([rule])
	return result.outcome == "ok" and result.allowed[0]


## A random text that is generated once on each device. The JWT is bound to it; a game server asks for both.
func device_factor() -> String:
	var factor: String = storage.read(base_url, "factor")
	if factor == "":
		factor = Crypto.new().generate_random_bytes(FACTOR_BYTES).hex_encode()
		storage.write(base_url, "factor", factor)
	return factor


## No shell ever sees the address. In a web export it must be called while the player presses a button.
func open_browser(url: String) -> bool:
	return _is_address(url, true) and OS.shell_open(url) == OK


# -- Sign-in through the browser ---------------------------------------------------------------------------------------

func _sign_in_with_browser(options: Dictionary) -> Dictionary:
	var answer := await _send(GAME_SESSION + "getGsid", _registration(options), SHORT_TIMEOUT)
	if answer.cancelled:
		return _result("cancelled")
	var session := _session(answer)
	if session.is_empty():
		return _refused(answer) if _text(answer.body, "status") == "ERROR" else _unreachable(answer)
	var location := _location(answer.location)
	link_ready.emit(session)
	if options.get("open_browser", true):
		open_browser(session.url)
	_report_state("waiting")
	var result := _result("cancelled")
	if not _cancelled:
		result = await _wait(session.gsid, location, options)
	if result.outcome != "refused":  # a refused session has ended by itself
		_cancelled = false
		var closing := {"gsid": session.gsid, "status": "Success" if result.outcome == "ok" else "Error"}
		await _send(GAME_SESSION + "closeGsid" + location, closing, SHORT_TIMEOUT)
	return result


func _registration(options: Dictionary) -> Dictionary:
	var asked := {"app_id": app_id}
	if options.factor != "":
		asked.factor = options.factor
	for name in ["code", "qr"]:
		if options.get(name, false):
			asked[name] = "1"
	asked.merge(options.get("more", {}), true)
	return asked


func _wait(gsid: String, location: String, options: Dictionary) -> Dictionary:
	var started := Time.get_ticks_msec()
	_answered = started
	var backoff := 1.0
	while Time.get_ticks_msec() - started < 1000 * SESSION_LIVES:
		var asked := {"gsid": gsid, "states": "1"}
		var answer := await _send(GAME_SESSION + "getGsidResult" + location, asked, options.get("poll_timeout", 40.0))
		var result = _ending(answer)
		if result != null:
			return result
		var seconds := _pause(answer)
		if seconds >= 0:
			_answered = Time.get_ticks_msec()
			backoff = 1.0
		elif _patience_left() <= 0:
			return _unreachable(answer)
		elif answer.timed_out:
			seconds = 0.0
		else:
			seconds = minf(backoff, _patience_left())
			backoff = minf(2 * backoff, 8)
		await _rest(seconds)
		if _cancelled:
			return _result("cancelled")
	return _result("unreachable", "the session is too old")


## The end, or null when polling goes on.
func _ending(answer: Dictionary) -> Variant:
	var status := _text(answer.body, "status")
	if answer.cancelled:
		return _result("cancelled")
	if answer.http == 429:
		return _refused(answer) if _pause(answer) > LONGEST_PAUSE else null
	if answer.http == 403 or (status == "ERROR" and answer.http < 500):  # 5xx may pass
		_report_state(_text(answer.body, "state"))
		return _refused(answer)
	if answer.http != 200:
		return null
	if status == "RETRY":
		_report_state(_text(answer.body, "state"))
	if status == "CANCELLED":
		_report_state("cancelled")
		return _result("cancelled")
	if status != "OK":
		return null
	_report_state("confirmed")
	return _signed_in(answer.body)


## Seconds until the next poll; -1 when there was no answer.
func _pause(answer: Dictionary) -> float:
	if answer.http == 429:
		return float(answer.retry_after) if answer.retry_after.is_valid_int() else 60.0
	if answer.http != 200 or _text(answer.body, "status") != "RETRY":
		return -1.0
	var delay = answer.body.get("delay", 1)
	return ceilf(delay) if (delay is float or delay is int) and delay >= 0 else 1.0


func _session(answer: Dictionary) -> Dictionary:
	var session := {}
	for name in ["gsid", "url", "code", "qr"]:
		session[name] = _text(answer.body, name)
	var usable: bool = session.gsid != "" and _is_address(session.url, true)
	return session if usable and _text(answer.body, "status") == "OK" else {}


func _report_state(state: String) -> void:
	if state != "" and state != _state:
		_state = state
		state_changed.emit(state)


# -- Guests and platforms ----------------------------------------------------------------------------------------------

func _sign_in_with_key(options: Dictionary) -> Dictionary:
	var asked := {"app_id": app_id, "device_key": Marshalls.raw_to_base64(_public_key())}
	var answer := await _send("/proxy/api/guest", asked, SHORT_TIMEOUT)
	for _attempt in 2:  # the first may be asked to solve a puzzle
		if answer.cancelled or _text(answer.body, "challenge") == "":
			break
		var proved := _registration(options).merged(_proof_fields(_text(answer.body, "challenge")))
		if answer.body.get("puzzle") is Dictionary:
			proved.puzzle = _text(answer.body.puzzle, "puzzle")
			proved.solution = await ProofOfWork.solve(answer.body.puzzle, get_tree(), func(): return _cancelled)
			_answered = Time.get_ticks_msec()
		if _cancelled:
			return _result("cancelled")
		answer = await _send("/proxy/api/guest", proved, SHORT_TIMEOUT)
	return _login_result(answer)


func _login_result(answer: Dictionary) -> Dictionary:
	var status := _text(answer.body, "status")
	if answer.cancelled:
		return _result("cancelled")
	if answer.http == 200 and status == "OK":
		return _signed_in(answer.body)
	if answer.http == 0 or answer.http >= 500 or (answer.http == 200 and not status in REASONS):
		return _unreachable(answer)
	var result := _refused(answer)
	result.data = answer.body
	if result.reason == "":
		result.reason = "throttled" if answer.http == 429 else REASONS.get(status, "")
	return result


func _device_key() -> PackedByteArray:
	var key := Marshalls.base64_to_raw(storage.read(base_url, "device_key"))
	if key.size() != KEY_BYTES:
		key = Crypto.new().generate_random_bytes(KEY_BYTES)
		storage.write(base_url, "device_key", Marshalls.raw_to_base64(key))
		storage.write(base_url, "public_key", "")
	return key


func _public_key() -> PackedByteArray:
	var key := _device_key()
	if storage.read(base_url, "public_key") == "":
		storage.write(base_url, "public_key", Marshalls.raw_to_base64(Ed25519.public_key(key)))
	return Marshalls.base64_to_raw(storage.read(base_url, "public_key"))


func _proof_fields(challenge: String) -> Dictionary:
	var signature := Ed25519.sign(_device_key(), _public_key(), challenge.to_utf8_buffer())
	return {
		"device_key": Marshalls.raw_to_base64(_public_key()), "challenge": challenge,
		"signature": Marshalls.raw_to_base64(signature)
	}


## Until the JWT ends, by the clock of this device; the service decides.
static func _seconds_left(session: Dictionary) -> float:
	var payload := _text(session, "jwt").get_slice(".", 1).replace("-", "+").replace("_", "/")
	payload += "=".repeat((4 - payload.length() % 4) % 4)
	var claims = JSON.parse_string(Marshalls.base64_to_utf8(payload))
	var ends = claims.get("exp", 0) if claims is Dictionary else 0
	return ends - Time.get_unix_time_from_system() if ends is float else 0.0


# -- One sign-in at a time ---------------------------------------------------------------------------------------------

func _begin(options: Dictionary) -> bool:
	if _busy or not _is_address(base_url, false):
		return false
	_busy = true
	_cancelled = false
	_state = ""
	_patience = options.get("patience", 90.0)
	_answered = Time.get_ticks_msec()
	if not "factor" in options:
		options.factor = device_factor()
	return true


func _finish(result: Dictionary, options: Dictionary) -> Dictionary:
	_busy = false
	if result.outcome == "ok" and result.jwt != "" and options.factor == device_factor():
		storage.write(base_url, "session", JSON.stringify(result.data))
	return result


## Seconds.
func _patience_left() -> float:
	return _patience - (Time.get_ticks_msec() - _answered) / 1000.0


func _rest(seconds: float) -> void:
	if seconds <= 0 or _cancelled:
		return
	_timer = Timer.new()
	_timer.one_shot = true
	_timer.timeout.connect(func(): _pause_ended.emit())
	add_child(_timer)
	_timer.start(seconds + MARGIN)
	await _pause_ended
	_timer.queue_free()
	_timer = null


# -- HTTP --------------------------------------------------------------------------------------------------------------

## A request of the sign-in, which `cancel` ends.
func _send(path: String, asked: Dictionary, timeout: float) -> Dictionary:
	_request = Request.new()
	var request := _request
	add_child(request)
	var limit := minf(timeout, maxf(_patience_left(), LEAST_TIMEOUT))
	var answer := await request.post(base_url.rstrip("/") + path, asked, PackedStringArray(), limit)
	request.queue_free()
	_request = null
	return answer


## A request with the stored session.
func _post_signed(path: String, asked: Dictionary) -> Dictionary:
	var request := Request.new()
	add_child(request)
	var credentials := PackedStringArray(
		["Authorization: Bearer " + _text(stored_session(), "jwt"), "Factor: " + device_factor()]
	)
	var answer := await request.post(base_url.rstrip("/") + path, asked, credentials, SHORT_TIMEOUT)
	request.queue_free()
	return answer


# -- Results -----------------------------------------------------------------------------------------------------------

func _result(outcome: String, error := "") -> Dictionary:
	return {
		"outcome": outcome, "user_id": "", "nick": "", "jwt": "", "token": "", "error": error,
		"reason": "", "public_text": "", "until": 0, "data": {}
	}


func _invalid() -> Dictionary:
	return _result("invalid", "base_url must be https, or http on this machine, and one sign-in at a time")


func _signed_in(data: Dictionary) -> Dictionary:
	var result := _result("ok")
	for name in ["user_id", "nick", "jwt", "token"]:
		result[name] = _text(data, name)
	result.data = data
	return result


func _refused(answer: Dictionary) -> Dictionary:
	var result := _result("refused", _text(answer.body, "error"))
	result.reason = _text(answer.body, "reason")
	result.public_text = _text(answer.body, "public_text")
	var until = answer.body.get("until", 0)
	result.until = int(until) if until is float or until is int else 0
	return result


func _unreachable(answer: Dictionary) -> Dictionary:
	return _result("unreachable", "HTTP %d" % answer.http if answer.http != 0 else answer.problem)


## What a permission endpoint said instead of OK. A session that it does not accept any more is forgotten.
func _not_allowed(answer: Dictionary) -> Dictionary:
	if answer.http == 401 or (answer.http == 200 and _text(answer.body, "error") == "invalid token"):
		sign_out()
		return _result("signed_out")
	return _refused(answer) if _text(answer.body, "status") == "ERROR" and answer.http < 500 else _unreachable(answer)


func _permissions(result: Dictionary, allowed: Array) -> Dictionary:
	result.allowed = allowed
	return result


static func _text(body: Dictionary, name: String) -> String:
	var value = body.get(name, "")
	return value if value is String else ""


static func _is_address(url: String, with_query: bool) -> bool:
	var found := RegEx.create_from_string(ADDRESS).search(url)
	return found != null and not "\n" in url and (with_query or found.get_string("query") == "")


## The query with the proof that polls need.
static func _location(header: String) -> String:
	var found := RegEx.create_from_string(LOCATION).search(header)
	return "" if found == null else "?location=" + found.get_string(1)
