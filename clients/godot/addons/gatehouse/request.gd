# SPDX-License-Identifier: Apache-2.0
extends HTTPRequest
## One POST with a JSON body. `abort` ends it from outside.

signal _ended(answer: Dictionary)

const LONGEST_ANSWER := 1048576  # bytes


## {http (0 without a response), body, location, retry_after, timed_out, cancelled, problem}
func post(url: String, body: Dictionary, headers: PackedStringArray, seconds: float) -> Dictionary:
	max_redirects = 0
	body_size_limit = LONGEST_ANSWER
	timeout = seconds
	request_completed.connect(_on_completed)
	var sent := PackedStringArray(["Content-Type: application/json"]) + headers
	if not OS.has_feature("web"):  # a browser sends its own
		sent.append("User-Agent: gatehouse-login/1 (Godot 4)")
	if request(url, sent, HTTPClient.METHOD_POST, JSON.stringify(body)) != OK:
		_ended.emit.call_deferred(_answer())
	return await _ended


func abort() -> void:
	cancel_request()
	var answer := _answer()
	answer.cancelled = true
	_ended.emit(answer)


func _on_completed(result: int, http: int, headers: PackedStringArray, body: PackedByteArray) -> void:
	var answer := _answer()
	answer.timed_out = result == RESULT_TIMEOUT
	answer.problem = "timeout" if answer.timed_out else "no connection (%d)" % result
	if result == RESULT_SUCCESS:
		answer.http = http
		answer.location = _header(headers, "location")
		answer.retry_after = _header(headers, "retry-after")
		var json := JSON.new()
		if json.parse(body.get_string_from_utf8()) == OK and json.data is Dictionary:
			answer.body = json.data
	_ended.emit(answer)


static func _answer() -> Dictionary:
	return {
		"http": 0, "body": {}, "location": "", "retry_after": "", "timed_out": false, "cancelled": false,
		"problem": "no connection"
	}


static func _header(headers: PackedStringArray, wanted: String) -> String:
	for line in headers:
		var colon := line.find(":")
		if colon > 0 and line.substr(0, colon).to_lower() == wanted:
			return line.substr(colon + 1).strip_edges()
	return ""
