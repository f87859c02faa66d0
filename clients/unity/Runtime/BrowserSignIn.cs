// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;

namespace Gatehouse
{
    /// <summary>One sign-in through the browser, from getGsid to closeGsid.</summary>
    internal sealed class BrowserSignIn
    {
        private const string GameSession = "/proxy/api/gameSession/";
        private const int LongestPause = 90; // seconds: an unpolled session ends after 120
        private const float ShortTimeout = 15; // seconds, for everything that is not held
        private const float LeastTimeout = 1; // seconds: a last try is still a try
        private const double SessionLives = 1200; // seconds
        private const float Margin = 0.02f; // seconds: clocks may be early, polls may not
        private static readonly Regex LocationValue = new Regex(@"[?&]location=([A-Za-z0-9._~%+/=-]{1,500})");
        private static readonly Dictionary<string, string> NoHeaders = new Dictionary<string, string>();

        private readonly string baseUrl;
        private readonly GatehouseOptions options;
        private readonly Action<string> onState;
        private readonly CancellationToken cancel;
        private double answered = Time.realtimeSinceStartupAsDouble;
        private string state = "";

        public BrowserSignIn(
            string baseUrl, GatehouseOptions options, Action<string> onState, CancellationToken cancel)
        {
            this.baseUrl = baseUrl;
            this.options = options;
            this.onState = onState;
            this.cancel = cancel;
        }

        public async Task<GatehouseResult> Run(Dictionary<string, object> registration)
        {
            Answer answer = await Send("getGsid", registration, "", ShortTimeout, cancel);
            GatehouseSession session = SessionOf(answer);
            if (session == null)
            {
                return Results.FromError(answer);
            }
            string closing = "Error"; // also when the game's own callbacks throw
            try
            {
                Show(session);
                Tell("waiting");
                GatehouseResult result = await Wait(session);
                closing = result.Outcome == GatehouseOutcome.Ok ? "Success" : "Error";
                closing = result.Outcome == GatehouseOutcome.Refused ? null : closing; // it has ended by itself
                return result;
            }
            finally
            {
                if (closing != null)
                {
                    var asked = new Dictionary<string, object> { { "gsid", session.Gsid }, { "status", closing } };
                    await Send("closeGsid", asked, session.Location, ShortTimeout, CancellationToken.None);
                }
            }
        }

        private void Show(GatehouseSession session)
        {
            if (options.Show == null)
            {
                Application.OpenURL(session.Url);
            }
            else
            {
                options.Show(session);
            }
        }

        private static GatehouseSession SessionOf(Answer answer)
        {
            Match location = LocationValue.Match(answer.Location);
            var session = new GatehouseSession
            {
                Gsid = answer.Text("gsid"),
                Url = answer.Text("url"),
                Code = answer.Text("code"),
                Qr = answer.Text("qr"),
                Location = location.Success ? location.Groups[1].Value : "",
            };
            bool usable = answer.Text("status") == "OK" && session.Gsid != "" && Address.IsLink(session.Url);
            return usable ? session : null;
        }

        private async Task<GatehouseResult> Wait(GatehouseSession session)
        {
            var asked = new Dictionary<string, object> { { "gsid", session.Gsid }, { "states", "1" } };
            double started = answered = Time.realtimeSinceStartupAsDouble;
            float pause = 1;
            while (Time.realtimeSinceStartupAsDouble - started < SessionLives)
            {
                Answer answer = await Send("getGsidResult", asked, session.Location, options.PollTimeout, cancel);
                GatehouseResult result = Ending(answer);
                if (result != null)
                {
                    return result;
                }
                int? seconds = Pause(answer);
                float beforeNext = seconds ?? 0;
                if (seconds != null)
                {
                    answered = Time.realtimeSinceStartupAsDouble;
                    pause = 1;
                }
                else if (PatienceLeft() <= 0)
                {
                    return Results.Unreachable(answer);
                }
                else if (!answer.TimedOut)
                {
                    beforeNext = Math.Min(pause, PatienceLeft());
                    pause = Math.Min(2 * pause, 8);
                }
                if (beforeNext > 0 && !await WebRequests.Rest(beforeNext + Margin, cancel))
                {
                    return Results.Cancelled();
                }
            }
            return Results.Unreachable(new Answer { Error = "the session is too old" });
        }

        /// <summary>Null when polling goes on.</summary>
        private GatehouseResult Ending(Answer answer)
        {
            string status = answer.Text("status");
            if (answer.Cancelled)
            {
                return Results.Cancelled();
            }
            if (answer.Http == 429)
            {
                return Pause(answer) > LongestPause ? Results.Refused(answer) : null;
            }
            if (answer.Http == 403 || (status == "ERROR" && answer.Http < 500)) // 5xx may pass
            {
                Tell(answer.Text("state"));
                return Results.Refused(answer);
            }
            if (answer.Http != 200 || (status != "OK" && status != "CANCELLED"))
            {
                return null;
            }
            Tell(status == "OK" ? "confirmed" : "cancelled");
            return status == "OK" ? Results.SignedIn(answer.Body) : Results.Cancelled();
        }

        /// <summary>Seconds until the next poll; null when there was no answer.</summary>
        private int? Pause(Answer answer)
        {
            if (answer.Http == 429)
            {
                return Seconds(answer.RetryAfter, 60);
            }
            if (answer.Http != 200 || answer.Text("status") != "RETRY")
            {
                return null;
            }
            Tell(answer.Text("state"));
            object delay;
            return answer.Members.TryGetValue("delay", out delay) && delay is double ? Seconds(delay.ToString(), 1) : 1;
        }

        private static int Seconds(string digits, int otherwise)
        {
            int seconds;
            bool whole = int.TryParse(digits, NumberStyles.None, CultureInfo.InvariantCulture, out seconds);
            return whole ? seconds : otherwise;
        }

        private void Tell(string now)
        {
            if (now != "" && now != state)
            {
                state = now;
                onState(now);
            }
        }

        private float PatienceLeft()
        {
            return Math.Max(0, options.Patience - (float)(Time.realtimeSinceStartupAsDouble - answered));
        }

        private Task<Answer> Send(
            string name, object body, string location, float timeout, CancellationToken cancellation)
        {
            string url = baseUrl + GameSession + name + (location == "" ? "" : "?location=" + location);
            float limit = Math.Min(timeout, Math.Max(PatienceLeft(), LeastTimeout));
            return WebRequests.Post(url, body, NoHeaders, limit, cancellation);
        }
    }

    internal static class Address
    {
        // https anywhere, plain http to this very machine; no user part, no blanks, nothing a command line could misread.
        private static readonly Regex Pattern = new Regex(
            @"\A(?:https://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])|http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::[0-9]{1,5})?"
            + @"(?:/[A-Za-z0-9._~/-]*)?(?<query>\?[A-Za-z0-9._~%&=+/-]*)?\z");

        public static bool IsLink(string url)
        {
            return Pattern.IsMatch(url);
        }

        public static bool IsBase(string url)
        {
            Match address = Pattern.Match(url);
            return address.Success && !address.Groups["query"].Success;
        }
    }

    internal static class Results
    {
        private static readonly Dictionary<string, string> Reasons = new Dictionary<string, string>
        {
            { "2STEP", "second_factor" },
            { "2STEPERROR", "wrong_code" },
            { "TERMS", "terms" },
            { "BLOCKED", "throttled" },
            { "LOGINERROR", "login_error" },
            { "DENIED", "denied" },
        };

        public static GatehouseResult SignedIn(string body)
        {
            Dictionary<string, object> members = Json.Read(body);
            return new GatehouseResult
            {
                Outcome = GatehouseOutcome.Ok,
                UserId = Json.Text(members, "user_id"),
                Nick = Json.Text(members, "nick"),
                Jwt = Json.Text(members, "jwt"),
                Token = Json.Text(members, "token"),
                Body = body,
            };
        }

        public static GatehouseResult Refused(Answer answer)
        {
            return new GatehouseResult
            {
                Outcome = GatehouseOutcome.Refused,
                Error = answer.Text("error"),
                Reason = answer.Text("reason"),
                PublicText = answer.Text("public_text"),
                Until = Json.Whole(answer.Members, "until"),
            };
        }

        public static GatehouseResult Cancelled()
        {
            return new GatehouseResult { Outcome = GatehouseOutcome.Cancelled };
        }

        public static GatehouseResult SignedOut()
        {
            return new GatehouseResult { Outcome = GatehouseOutcome.SignedOut };
        }

        public static GatehouseResult Unreachable(Answer answer)
        {
            string error = answer.Error == "" ? "HTTP " + answer.Http : answer.Error;
            return new GatehouseResult { Outcome = GatehouseOutcome.Unreachable, Error = error };
        }

        /// <summary>The answer of a login without a browser.</summary>
        public static GatehouseResult FromLogin(Answer answer)
        {
            string status = answer.Text("status"), reason;
            if (answer.Cancelled)
            {
                return Cancelled();
            }
            if (answer.Http == 200 && status == "OK")
            {
                return SignedIn(answer.Body);
            }
            bool isKnown = Reasons.TryGetValue(status, out reason);
            if (answer.Http == 0 || answer.Http >= 500 || (answer.Http == 200 && !isKnown))
            {
                return Unreachable(answer);
            }
            GatehouseResult result = Refused(answer);
            result.Url = answer.Text("url");
            result.RequestId = answer.Text("request_id");
            result.Body = answer.Body;
            if (result.Reason == "")
            {
                result.Reason = answer.Http == 429 ? "throttled" : reason ?? "";
            }
            return result;
        }

        public static GatehouseResult FromError(Answer answer)
        {
            if (answer.Cancelled)
            {
                return Cancelled();
            }
            return answer.Text("status") == "ERROR" ? Refused(answer) : Unreachable(answer);
        }
    }
}
