// The part of Unity's API that clients/unity uses, for tests without Unity. UnityWebRequest really sends.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;

namespace UnityEngine
{
    public class SerializeField : Attribute
    {
    }

    public class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    public class AddComponentMenu : Attribute
    {
        public AddComponentMenu(string menuName)
        {
        }
    }

    public class RequireComponent : Attribute
    {
        public RequireComponent(Type requiredComponent)
        {
        }
    }

    [Flags]
    public enum HideFlags
    {
        None = 0,
        HideAndDontSave = 61,
    }

    public class Object
    {
        public HideFlags hideFlags { get; set; }

        public static void DontDestroyOnLoad(Object target)
        {
        }
    }

    public class GameObject : Object
    {
        private readonly List<MonoBehaviour> components = new List<MonoBehaviour>();

        public GameObject(string name)
        {
        }

        public T AddComponent<T>() where T : MonoBehaviour, new()
        {
            var component = new T { gameObject = this };
            components.Add(component);
            Engine.Call(component, "Start");
            return component;
        }

        internal T Find<T>()
        {
            return components.OfType<T>().FirstOrDefault();
        }
    }

    public class Coroutine
    {
    }

    public class MonoBehaviour : Object
    {
        public GameObject gameObject { get; internal set; }

        public T GetComponent<T>()
        {
            return gameObject.Find<T>();
        }

        public Coroutine StartCoroutine(IEnumerator routine)
        {
            Engine.Add(routine);
            return new Coroutine();
        }
    }

    public static class Time
    {
        private static readonly Stopwatch Started = Stopwatch.StartNew();

        public static double realtimeSinceStartupAsDouble
        {
            get { return Started.Elapsed.TotalSeconds; }
        }
    }

    public static class Debug
    {
        public static void Log(object message)
        {
            Console.WriteLine(message);
            Console.Out.Flush();
        }
    }

    public static class Application
    {
        public static void OpenURL(string url)
        {
            try
            {
                using (Process.Start(new ProcessStartInfo("xdg-open", url) { UseShellExecute = false }))
                {
                }
            }
            catch (SystemException)
            {
                // Unity reports nothing either.
            }
        }
    }

    /// <summary>A file for each value in $PREFERENCES.</summary>
    public static class PlayerPrefs
    {
        private static string PathOf(string key)
        {
            string name = Convert.ToBase64String(System.Text.Encoding.UTF8.GetBytes(key)).Replace('/', '_');
            return Path.Combine(Environment.GetEnvironmentVariable("PREFERENCES"), name);
        }

        public static string GetString(string key, string defaultValue)
        {
            return File.Exists(PathOf(key)) ? File.ReadAllText(PathOf(key)) : defaultValue;
        }

        public static void SetString(string key, string value)
        {
            File.WriteAllText(PathOf(key), value);
        }

        public static void DeleteKey(string key)
        {
            File.Delete(PathOf(key));
        }

        public static void Save()
        {
        }
    }

    /// <summary>The main loop.</summary>
    public static class Engine
    {
        private static readonly List<IEnumerator> Routines = new List<IEnumerator>();

        /// <summary>Runs a coroutine to its first yield, as Unity does.</summary>
        public static void Add(IEnumerator routine)
        {
            if (routine.MoveNext())
            {
                Routines.Add(routine);
            }
        }

        public static void RunFramesUntil(Func<bool> done)
        {
            while (!done())
            {
                foreach (IEnumerator routine in Routines.ToArray())
                {
                    if (routine.Current != null)
                    {
                        throw new NotSupportedException("a coroutine may only yield null here");
                    }
                    if (!routine.MoveNext())
                    {
                        Routines.Remove(routine);
                    }
                }
                Thread.Sleep(5);
            }
        }

        public static void Call(MonoBehaviour component, string message)
        {
            const BindingFlags Any = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
            MethodInfo method = component.GetType().GetMethod(message, Any);
            method?.Invoke(component, null);
        }
    }
}
