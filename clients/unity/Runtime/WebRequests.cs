// SPDX-License-Identifier: Apache-2.0

using System.Collections;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;
using UnityEngine.Networking;

namespace Gatehouse
{
    internal sealed class Answer
    {
        public int Http; // 0 when there was no answer
        public bool TimedOut;
        public bool Cancelled;
        public string Error = "";
        public string Body = "";
        public string Location = "";
        public string RetryAfter = "";
        public Dictionary<string, object> Members = new Dictionary<string, object>();

        public string Text(string name)
        {
            return Json.Text(Members, name);
        }
    }

    /// <summary>
    /// POST requests and pauses. There is no thread and no timer of .NET, which WebGL does not have: everything happens in
    /// Unity's main loop, on an object of its own, so that a sign-in also ends in order when its scene is left.
    /// </summary>
    internal static class WebRequests
    {
        private static FrameRunner runner;

        public static Task<Answer> Post(
            string url, object body, IDictionary<string, string> headers, float seconds, CancellationToken cancel)
        {
            var answered = new TaskCompletionSource<Answer>();
            Start(Send(url, Json.Write(body), headers, seconds, cancel, answered));
            return answered.Task;
        }

        /// <summary>False once the game has cancelled.</summary>
        public static Task<bool> Rest(float seconds, CancellationToken cancel)
        {
            var rested = new TaskCompletionSource<bool>();
            Start(WaitFor(seconds, cancel, rested));
            return rested.Task;
        }

        public static Task<bool> NextFrame()
        {
            var reached = new TaskCompletionSource<bool>();
            Start(PassFrame(reached));
            return reached.Task;
        }

        private static void Start(IEnumerator routine)
        {
            if (runner == null)
            {
                var owner = new GameObject("Gatehouse requests") { hideFlags = HideFlags.HideAndDontSave };
                Object.DontDestroyOnLoad(owner);
                runner = owner.AddComponent<FrameRunner>();
            }
            runner.StartCoroutine(routine);
        }

        private static IEnumerator PassFrame(TaskCompletionSource<bool> reached)
        {
            yield return null;
            reached.TrySetResult(true);
        }

        private static IEnumerator WaitFor(float seconds, CancellationToken cancel, TaskCompletionSource<bool> rested)
        {
            double ends = Time.realtimeSinceStartupAsDouble + seconds;
            while (Time.realtimeSinceStartupAsDouble < ends && !cancel.IsCancellationRequested)
            {
                yield return null;
            }
            rested.TrySetResult(!cancel.IsCancellationRequested);
        }

        private static IEnumerator Send(
            string url, string body, IDictionary<string, string> headers, float seconds, CancellationToken cancel,
            TaskCompletionSource<Answer> answered)
        {
            using (var request = new UnityWebRequest(url, UnityWebRequest.kHttpVerbPOST))
            {
                request.uploadHandler = new UploadHandlerRaw(Encoding.UTF8.GetBytes(body));
                request.downloadHandler = new BoundedDownload();
                request.redirectLimit = 0;
                request.SetRequestHeader("Content-Type", "application/json");
                foreach (KeyValuePair<string, string> header in headers)
                {
                    request.SetRequestHeader(header.Key, header.Value);
                }
                double ends = Time.realtimeSinceStartupAsDouble + seconds;
                request.SendWebRequest();
                while (!request.isDone && !cancel.IsCancellationRequested && Time.realtimeSinceStartupAsDouble < ends)
                {
                    yield return null;
                }
                if (request.isDone)
                {
                    answered.TrySetResult(Read(request));
                    yield break;
                }
                request.Abort();
            }
            bool byGame = cancel.IsCancellationRequested;
            answered.TrySetResult(new Answer { Cancelled = byGame, TimedOut = !byGame, Error = "timeout" });
        }

        private static Answer Read(UnityWebRequest request)
        {
            bool whole = request.result == UnityWebRequest.Result.Success
                || request.result == UnityWebRequest.Result.ProtocolError;
            if (!whole)
            {
                return new Answer { Error = string.IsNullOrEmpty(request.error) ? "no connection" : request.error };
            }
            string body = ((BoundedDownload)request.downloadHandler).Body;
            return new Answer
            {
                Http = (int)request.responseCode,
                Body = body,
                Location = request.GetResponseHeader("Location") ?? "",
                RetryAfter = request.GetResponseHeader("Retry-After") ?? "",
                Members = Json.Read(body),
            };
        }

        private sealed class FrameRunner : MonoBehaviour
        {
        }

        /// <summary>At most a mebibyte: a longer answer is an error.</summary>
        private sealed class BoundedDownload : DownloadHandlerScript
        {
            private const int LongestAnswer = 1 << 20;
            private readonly List<byte> received = new List<byte>();

            public string Body
            {
                get { return Encoding.UTF8.GetString(received.ToArray()); }
            }

            protected override bool ReceiveData(byte[] data, int dataLength)
            {
                if (data == null || received.Count + dataLength > LongestAnswer)
                {
                    return false;
                }
                for (int at = 0; at < dataLength; at++)
                {
                    received.Add(data[at]);
                }
                return true;
            }
        }
    }
}
